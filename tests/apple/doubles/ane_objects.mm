// Doubles of AppleNeuralEngine's small classes: device, surfaces, statistics and request. Without
// ARC, for GCC's runtime.
#import "ane_objects.h"

#include <algorithm>

#include "ane_script.h"

using namespace doubles;

namespace doubles {

void ane_raise(const char* what) {
  [NSException raise:NSInvalidArgumentException format:@"ANE double: %s", what];
}

}  // namespace doubles

static const NSUInteger kStatisticsBytes = 4096;

@interface _ANEDeviceInfo : NSObject
@end

@implementation AneDouble
- (id)init {
  count_object(1);
  return [super init];
}
- (void)dealloc {
  count_object(-1);
  [super dealloc];
}
@end

@implementation _ANEDeviceInfo
+ (BOOL)respondsToSelector:(SEL)selector {
  const bool counts =
      sel_isEqual(selector, @selector(numANEs)) || sel_isEqual(selector, @selector(numANECores));
  if (fault("no_core_count") && counts) return NO;
  if (fault("no_architecture") && sel_isEqual(selector, @selector(aneArchitectureType))) return NO;
  return [super respondsToSelector:selector];
}
+ (BOOL)hasANE {
  if (fault("device_exception")) ane_raise("told to raise");
  return fault("no_engine") ? NO : YES;
}
+ (BOOL)isVirtualMachine {
  return fault("ane_virtual") ? YES : NO;
}
+ (unsigned int)numANEs {
  return ane_script().engines;
}
+ (unsigned int)numANECores {
  return ane_script().cores;
}
+ (NSString*)aneArchitectureType {
  return [NSString stringWithUTF8String:ane_script().architecture.c_str()];
}
@end

@implementation _ANEIOSurfaceObject
+ (id)objectWithIOSurface:(IOSurfaceRef)surface {
  if (surface == nullptr) ane_raise("no surface");
  _ANEIOSurfaceObject* object = [[self new] autorelease];
  object->surface = [(DoubleSurface*)surface retain];
  return object;
}
- (void)dealloc {
  [surface release];
  [super dealloc];
}
@end

@implementation _ANEPerformanceStatsIOSurface
+ (id)objectWithIOSurface:(_ANEIOSurfaceObject*)object statType:(long long)type {
  if (fault("no_stats_surface")) return nil;
  const auto& memory = *object->surface->memory;
  const bool zeroed = std::all_of(memory.begin(), memory.end(), [](auto b) { return b == 0; });
  if (type != 2 || memory.size() < kStatisticsBytes || !zeroed) ane_raise("no counter surface");
  _ANEPerformanceStatsIOSurface* made = [[self new] autorelease];
  made->object = [object retain];
  return made;
}
- (void)dealloc {
  [object release];
  [super dealloc];
}
@end

@implementation _ANEPerformanceStats
+ (BOOL)instancesRespondToSelector:(SEL)selector {
  if (fault("no_counter_method") && sel_isEqual(selector, @selector(perfCounterData))) return NO;
  return [super instancesRespondToSelector:selector];
}
- (void)dealloc {
  [data release];
  [super dealloc];
}
- (unsigned long long)hwExecutionTime {
  return time;
}
- (NSData*)perfCounterData {
  if (fault("counters_exception")) ane_raise("told to raise");
  count_snapshot();
  return data;
}
- (NSString*)stringForPerfCounter:(int)index {
  if (index == 6) return @"kANE_FP16_CYCLES:";
  if (index == 10) return @"kANE_NE_NOMINAL_CYCLES";
  return index < 24 ? [NSString stringWithFormat:@"kANE_REGISTER_%d", index] : @"kANE_UKNOWN";
}
@end

@implementation _ANERequest
+ (id)requestWithInputs:(NSArray*)inputs
           inputIndices:(NSArray*)inputIndices
                outputs:(NSArray*)outputs
          outputIndices:(NSArray*)outputIndices
              perfStats:(NSArray*)statistics
         procedureIndex:(NSNumber*)procedure {
  if ([inputs count] != 1 || [outputs count] != 1 || [inputIndices count] != 1 ||
      ![inputIndices isEqual:outputIndices] || [statistics count] > 1) {
    ane_raise("a request with other than one input, output and kind of statistics");
  }
  _ANERequest* request = [[self new] autorelease];
  request->input = [[inputs objectAtIndex:0] retain];
  request->output = [[outputs objectAtIndex:0] retain];
  request->index = [[inputIndices objectAtIndex:0] intValue] * 10 + [procedure intValue];
  if ([statistics count] == 1) request->statistics = [[statistics objectAtIndex:0] retain];
  request->last_input = new std::vector<unsigned char>;
  request->last_output = new std::vector<unsigned char>;
  return request;
}
- (void)dealloc {
  [input release];
  [output release];
  [statistics release];
  [perfStats release];
  delete last_input;
  delete last_output;
  [super dealloc];
}
- (BOOL)validate {
  return fault("invalid_request") ? NO : YES;
}
- (id)perfStats {
  return perfStats;
}
@end
