#import "ane_attributes.h"

#import "support.h"

namespace nnbt::ane {
namespace {

std::int64_t count_of(NSDictionary<NSString*, id>* _Nonnull entry, NSString* _Nonnull key) {
  id value = entry[key];
  return [value isKindOfClass:[NSNumber class]] ? [(NSNumber*)value longLongValue] : 0;
}

Tensor tensor_of(NSDictionary<NSString*, id>* _Nonnull entry) {
  Tensor t;
  id type = entry[@"Type"];
  if ([type isKindOfClass:[NSString class]]) t.type = to_string(type);
  t.batches = count_of(entry, @"Batches");
  t.channels = count_of(entry, @"Channels");
  t.depth = count_of(entry, @"Depth");
  t.height = count_of(entry, @"Height");
  t.width = count_of(entry, @"Width");
  t.batch_stride = count_of(entry, @"BatchStride");
  t.depth_stride = count_of(entry, @"DepthStride");
  t.plane_stride = count_of(entry, @"PlaneStride");
  t.row_stride = count_of(entry, @"RowStride");
  t.interleave = count_of(entry, @"Interleave");
  return t;
}

// The element of an array or the value of a dictionary; nil if the structure differs.
id _Nullable item(id _Nullable list, NSUInteger index) {
  if (![list isKindOfClass:[NSArray class]] || [(NSArray*)list count] <= index) return nil;
  return ((NSArray*)list)[index];
}
id _Nullable value(id _Nullable dictionary, NSString* _Nonnull key) {
  return [dictionary isKindOfClass:[NSDictionary class]] ? ((NSDictionary*)dictionary)[key] : nil;
}

bool is_dictionary(id _Nullable object) { return [object isKindOfClass:[NSDictionary class]]; }

}  // namespace

Attributes read_attributes(NSDictionary<NSString*, id>* _Nullable model_attributes) {
  Attributes out;
  id network = item(value(model_attributes, @"NetworkStatusList"), 0);
  id inputs = value(network, @"LiveInputList");
  id outputs = value(network, @"LiveOutputList");
  id input = item(inputs, 0);
  id output = item(outputs, 0);
  const bool single = item(inputs, 1) == nil && item(outputs, 1) == nil;
  out.one_input_and_output = single && is_dictionary(input) && is_dictionary(output);
  if (!out.one_input_and_output) return out;
  out.input = tensor_of(input);
  out.output = tensor_of(output);
  id description = value(model_attributes, @"ANEFModelDescription");
  id procedure = item(value(description, @"ANEFModelProcedures"), 0);
  id input_indices = value(procedure, @"ANEFModelInputSymbolIndexArray");
  id output_indices = value(procedure, @"ANEFModelOutputSymbolIndexArray");
  id number = value(procedure, @"ANEFModelProcedureID");
  out.input_indices = [input_indices isKindOfClass:[NSArray class]] ? input_indices : @[ @0 ];
  out.output_indices = [output_indices isKindOfClass:[NSArray class]] ? output_indices : @[ @0 ];
  out.procedure = [number isKindOfClass:[NSNumber class]] ? number : @0;
  return out;
}

}  // namespace nnbt::ane
