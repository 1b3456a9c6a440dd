// Double of a model: exists at once, but describes itself only after loading.
#include "ane_layout.h"
#import "ane_objects.h"

using namespace doubles;

namespace {

NSDictionary* live_entry(const Layout& layout) {
  const auto number = [](std::size_t value) {
    return [NSNumber numberWithUnsignedLong:static_cast<unsigned long>(value)];
  };
  NSMutableDictionary* entry = [NSMutableDictionary dictionary];
  [entry setObject:fault("odd_type")               ? @"Float8"
                   : layout.type == Type::kFloat16 ? @"Float16"
                                                   : @"Int8"
            forKey:@"Type"];
  [entry setObject:number(layout.shape.at(0)) forKey:@"Batches"];
  [entry setObject:number(layout.shape.at(1)) forKey:@"Channels"];
  [entry setObject:number(layout.shape.at(2)) forKey:@"Height"];
  [entry setObject:number(layout.shape.at(3) + (fault("odd_width") ? 1 : 0)) forKey:@"Width"];
  if (fault("sparse_list")) return entry;
  [entry setObject:number(1) forKey:@"Depth"];
  [entry setObject:number(fault("interleaved") ? 4 : 1) forKey:@"Interleave"];
  [entry setObject:number(layout.row_stride) forKey:@"RowStride"];
  [entry setObject:number(layout.plane_stride()) forKey:@"PlaneStride"];
  [entry setObject:number(layout.shape.at(1)) forKey:@"PlaneCount"];
  [entry setObject:number(layout.batch_stride()) forKey:@"DepthStride"];
  [entry setObject:number(layout.batch_stride()) forKey:@"BatchStride"];
  return entry;
}

}  // namespace

@implementation _ANEModel
+ (BOOL)respondsToSelector:(SEL)selector {
  const bool newer = sel_isEqual(selector, @selector(modelAtURL:key:mpsConstants:));
  if (fault("older_model") && newer) return NO;
  return [super respondsToSelector:selector];
}
+ (id)modelAtURL:(NSURL*)url key:(NSString*)key {
  _ANEModel* model = [[self new] autorelease];
  model->directory = new std::string([[url path] UTF8String]);
  model->key = new std::string([key UTF8String]);
  return model;
}
+ (id)modelAtURL:(NSURL*)url key:(NSString*)key mpsConstants:(NSString*)constants {
  if (![constants isEqual:@"constants"]) ane_raise("unknown constants");
  return [self modelAtURL:url key:key];
}
- (void)dealloc {
  if (graph != nullptr) ane_raise("a model is released before it's unloaded");
  delete directory;
  delete key;
  [super dealloc];
}
- (BOOL)respondsToSelector:(SEL)selector {
  if (fault("no_mask") && sel_isEqual(selector, @selector(perfStatsMask))) return NO;
  return [super respondsToSelector:selector];
}
- (unsigned int)perfStatsMask {
  return mask;
}
- (void)setPerfStatsMask:(unsigned int)value {
  mask = value;
}
- (NSDictionary*)modelAttributes {
  if (graph == nullptr || fault("no_attributes")) return nil;
  NSArray* inputs = [NSArray arrayWithObject:live_entry(Layout(*graph->input))];
  if (fault("two_inputs")) inputs = [inputs arrayByAddingObjectsFromArray:inputs];
  NSArray* outputs = [NSArray arrayWithObject:live_entry(Layout(*graph->output))];
  NSDictionary* network = [NSDictionary
      dictionaryWithObjectsAndKeys:inputs, @"LiveInputList", outputs, @"LiveOutputList", nil];
  NSArray* third = [NSArray arrayWithObject:[NSNumber numberWithInt:3]];
  NSDictionary* procedure = [NSDictionary
      dictionaryWithObjectsAndKeys:third, @"ANEFModelInputSymbolIndexArray", third,
                                   @"ANEFModelOutputSymbolIndexArray", [NSNumber numberWithInt:2],
                                   @"ANEFModelProcedureID", nil];
  NSDictionary* description = [NSDictionary dictionaryWithObject:[NSArray arrayWithObject:procedure]
                                                          forKey:@"ANEFModelProcedures"];
  NSMutableDictionary* attributes = [NSMutableDictionary dictionary];
  [attributes setObject:[NSArray arrayWithObject:network] forKey:@"NetworkStatusList"];
  if (!fault("sparse_list")) [attributes setObject:description forKey:@"ANEFModelDescription"];
  return attributes;
}
@end
