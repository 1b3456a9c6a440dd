// Doubles of Metal's device, queue and buffer, and of what GNUstep's NSProcessInfo lacks.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <vector>

#include "graph_state.h"

#pragma clang diagnostic ignored "-Wobjc-property-implementation"

@interface DoubleBuffer : NSObject <MTLBuffer> {
 @public
  std::vector<char>* memory;
}
@end
@interface DoubleQueue : NSObject <MTLCommandQueue>
@end
@interface DoubleDevice : NSObject <MTLDevice>
@end

@implementation DoubleBuffer
- (id)init {
  doubles::count_object(1);
  return [super init];
}
- (void)dealloc {
  delete memory;
  doubles::count_object(-1);
  [super dealloc];
}
- (NSUInteger)length {
  return memory->size();
}
- (void*)contents {
  return memory->data();
}
@end

@implementation DoubleQueue
- (id)init {
  doubles::count_object(1);
  return [super init];
}
- (void)dealloc {
  doubles::count_object(-1);
  [super dealloc];
}
@end

@implementation DoubleDevice
- (id)init {
  doubles::count_object(1);
  return [super init];
}
- (void)dealloc {
  doubles::count_object(-1);
  [super dealloc];
}
- (NSString*)name {
  return @"Double of an Apple GPU";
}
- (NSUInteger)maxBufferLength {
  return doubles::fault("small_buffers") ? 16 : 1U << 30U;
}
- (id<MTLCommandQueue>)newCommandQueue {
  return doubles::fault("no_queue") ? nil : [DoubleQueue new];
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  (void)options;
  if (doubles::fault("no_memory")) return nil;
  DoubleBuffer* buffer = [DoubleBuffer new];
  buffer->memory = new std::vector<char>(length);
  return buffer;
}
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  return doubles::fault("no_metal") ? nil : [DoubleDevice new];
}

@implementation NSProcessInfo (NNBTNewer)
- (NSProcessInfoThermalState)thermalState {
  static int readings = 0;
  ++readings;
  if (doubles::fault("cools_down")) return readings == 1 ? 2 : 0;
  if (doubles::fault("warms_up")) return readings == 1 ? 0 : 2;
  const char* levels[] = {"", "warm", "hot", "critical", "no_such_level"};
  for (NSInteger level = 1; level < 5; ++level) {
    if (doubles::fault(levels[level])) return level;
  }
  return 0;
}
- (BOOL)isLowPowerModeEnabled {
  static int readings = 0;
  ++readings;
  if (doubles::fault("saves_at_first")) return readings == 1;
  if (doubles::fault("saves_later")) return readings > 1;
  return doubles::fault("low_power") ? YES : NO;
}
@end
