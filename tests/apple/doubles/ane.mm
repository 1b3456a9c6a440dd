// Doubles of the private classes of AppleNeuralEngine. The client computes the real convolution of
// the loaded region through the caller's surfaces, with rows padded to 64 bytes, and refuses what
// the framework would refuse. Without ARC, for GCC's runtime.
#import <Foundation/Foundation.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ane_script.h"
#include "package_files.h"
#import "surface.h"

using namespace doubles;

namespace {

constexpr unsigned kCounterBit = 4;
constexpr NSUInteger kStatisticsBytes = 4096;
constexpr std::size_t kRow = 64;
// Written into padding, so that whoever takes an output for dense reads NaN or -1.
constexpr unsigned char kPoison = 0xFF;

void raise(const char* what) {
  [NSException raise:NSInvalidArgumentException format:@"ANE double: %s", what];
}

NSError* error_of(NSInteger code, NSString* text) {
  NSError* below = [NSError errorWithDomain:@"H11ANEIn" code:0xE00002C7 userInfo:nil];
  return [NSError
      errorWithDomain:@"com.apple.appleneuralengine"
                 code:code
             userInfo:[NSDictionary dictionaryWithObjectsAndKeys:text, NSLocalizedDescriptionKey,
                                                                 below, NSUnderlyingErrorKey, nil]];
}

unsigned mask_in(NSDictionary* options) {
  return [[options objectForKey:@"kANEFPerformanceStatsMask"] unsignedIntValue];
}

// A tensor's rows in a surface.
struct Layout {
  explicit Layout(const Node& node) : shape(node.shape), type(node.type) {
    row_bytes = shape.at(3) * bytes_of(type);
    row_stride = (row_bytes + kRow - 1) / kRow * kRow;
  }
  std::size_t plane_stride() const { return row_stride * shape.at(2); }
  std::size_t batch_stride() const { return plane_stride() * shape.at(1); }
  std::size_t bytes() const { return batch_stride() * shape.at(0); }
  std::size_t rows() const { return shape.at(0) * shape.at(1) * shape.at(2); }

  NSDictionary* live_entry() const {
    const auto number = [](std::size_t value) {
      return [NSNumber numberWithUnsignedLong:static_cast<unsigned long>(value)];
    };
    NSMutableDictionary* entry = [NSMutableDictionary dictionary];
    [entry setObject:fault("odd_type")        ? @"Float8"
                     : type == Type::kFloat16 ? @"Float16"
                                              : @"Int8"
              forKey:@"Type"];
    [entry setObject:number(shape.at(0)) forKey:@"Batches"];
    [entry setObject:number(shape.at(1)) forKey:@"Channels"];
    [entry setObject:number(shape.at(2)) forKey:@"Height"];
    [entry setObject:number(shape.at(3) + (fault("odd_width") ? 1 : 0)) forKey:@"Width"];
    if (fault("sparse_list")) return entry;
    [entry setObject:number(1) forKey:@"Depth"];
    [entry setObject:number(fault("interleaved") ? 4 : 1) forKey:@"Interleave"];
    [entry setObject:number(row_stride) forKey:@"RowStride"];
    [entry setObject:number(plane_stride()) forKey:@"PlaneStride"];
    [entry setObject:number(shape.at(1)) forKey:@"PlaneCount"];
    [entry setObject:number(batch_stride()) forKey:@"DepthStride"];
    [entry setObject:number(batch_stride()) forKey:@"BatchStride"];
    return entry;
  }

  Shape shape;
  Type type;
  std::size_t row_bytes;
  std::size_t row_stride;
};

std::vector<unsigned char> gather(const Layout& layout, const std::vector<unsigned char>& memory) {
  std::vector<unsigned char> dense(layout.rows() * layout.row_bytes);
  for (std::size_t row = 0; row < layout.rows(); ++row) {
    std::memcpy(dense.data() + row * layout.row_bytes, memory.data() + row * layout.row_stride,
                layout.row_bytes);
  }
  return dense;
}

void scatter(const Layout& layout, const std::vector<unsigned char>& dense,
             std::vector<unsigned char>& memory) {
  std::memset(memory.data(), kPoison, layout.bytes());
  for (std::size_t row = 0; row < layout.rows(); ++row) {
    std::memcpy(memory.data() + row * layout.row_stride, dense.data() + row * layout.row_bytes,
                layout.row_bytes);
  }
}

}  // namespace

@interface AneDouble : NSObject
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

@interface _ANEDeviceInfo : NSObject
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

@interface _ANEIOSurfaceObject : AneDouble {
 @public
  DoubleSurface* surface;
}
@end
@implementation _ANEIOSurfaceObject
+ (id)objectWithIOSurface:(IOSurfaceRef)surface {
  if (surface == nullptr) raise("no surface");
  _ANEIOSurfaceObject* object = [[self new] autorelease];
  object->surface = [(DoubleSurface*)surface retain];
  return object;
}
- (void)dealloc {
  [surface release];
  [super dealloc];
}
@end

@interface _ANEPerformanceStatsIOSurface : AneDouble {
 @public
  _ANEIOSurfaceObject* object;
}
@end
@implementation _ANEPerformanceStatsIOSurface
+ (id)objectWithIOSurface:(_ANEIOSurfaceObject*)object statType:(long long)type {
  if (fault("no_stats_surface")) return nil;
  const auto& memory = *object->surface->memory;
  const bool zeroed = std::all_of(memory.begin(), memory.end(), [](auto b) { return b == 0; });
  if (type != 2 || memory.size() < kStatisticsBytes || !zeroed) raise("no counter surface");
  _ANEPerformanceStatsIOSurface* made = [[self new] autorelease];
  made->object = [object retain];
  return made;
}
- (void)dealloc {
  [object release];
  [super dealloc];
}
@end

@interface _ANEPerformanceStats : AneDouble {
 @public
  NSData* data;
  unsigned long long time;
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
  count_snapshot();
  return data;
}
- (NSString*)stringForPerfCounter:(int)index {
  if (index == 6) return @"kANE_FP16_CYCLES:";
  if (index == 10) return @"kANE_NE_NOMINAL_CYCLES";
  return index < 24 ? [NSString stringWithFormat:@"kANE_REGISTER_%d", index] : @"kANE_UKNOWN";
}
@end

@interface _ANEModel : AneDouble {
 @public
  std::string* directory;
  std::string* key;
  Graph* graph;  // once loaded
  unsigned mask;
}
@end
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
  if (![constants isEqual:@"constants"]) raise("unknown constants");
  return [self modelAtURL:url key:key];
}
- (void)dealloc {
  if (graph != nullptr) raise("a model is released before it's unloaded");
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
  NSArray* inputs = [NSArray arrayWithObject:Layout(*graph->input).live_entry()];
  if (fault("two_inputs")) inputs = [inputs arrayByAddingObjectsFromArray:inputs];
  NSArray* outputs = [NSArray arrayWithObject:Layout(*graph->output).live_entry()];
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

@interface _ANERequest : AneDouble {
 @public
  _ANEIOSurfaceObject* input;
  _ANEIOSurfaceObject* output;
  _ANEPerformanceStatsIOSurface* statistics;
  int index;
  _ANEPerformanceStats* perfStats;
  std::vector<unsigned char>* last_input;
  std::vector<unsigned char>* last_output;
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
    raise("a request with other than one input, output and kind of statistics");
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

@interface _ANEClient : NSObject
@end

namespace {

_ANERequest* only_request = nil;  // of the loaded model: one is made and used again
long evaluations = 0;

void compute(const Graph& graph, _ANERequest* request) {
  const Layout in(*graph.input);
  const Layout out(*graph.output);
  auto& source = *request->input->surface->memory;
  auto& target = *request->output->surface->memory;
  if (request->input->surface->locks != 0 || request->output->surface->locks != 0) {
    raise("a surface is locked while the engine uses it");
  }
  if (source.size() < in.bytes() || target.size() < out.bytes()) raise("a surface is too small");
  // The same input gives the same output: computed once.
  std::vector<unsigned char> input = gather(in, source);
  if (input != *request->last_input) {
    Values values = evaluate(graph, decode(input.data(), count(in.shape), in.type));
    if (fault("ane_zero_output")) values.assign(values.size(), 0);
    request->last_output->resize(out.rows() * out.row_bytes);
    encode(values, out.type, request->last_output->data());
    *request->last_input = std::move(input);
  }
  scatter(out, *request->last_output, target);
}

void attach_statistics(_ANEModel* model, _ANERequest* request, NSDictionary* options) {
  [request->perfStats release];
  request->perfStats = nil;
  const bool wanted = (mask_in(options) & kCounterBit) != 0 && request->statistics != nil;
  if (!wanted || model->mask == 0 || fault("no_stats")) return;
  _ANEPerformanceStats* made = [_ANEPerformanceStats new];
  made->time = fault("no_hw_time") ? 0 : ane_script().hw_ns;
  const std::vector<std::uint64_t> registers = count_evaluation();
  NSUInteger bytes = registers.size() * sizeof(std::uint64_t);
  if (fault("odd_counters")) bytes -= 3;
  if (!fault("no_counter_data")) {
    made->data = [[NSData alloc] initWithBytes:registers.data() length:bytes];
  }
  request->perfStats = made;
}

NSError* load_error(NSDictionary* options) {
  if (count_executables(0) > 0) return error_of(0xE00002F0, @"exclusive access");
  if (fault("load_fails")) return error_of(6, @"Program load failure");
  if (fault("load_fails_with_mask") && mask_in(options) != 0) {
    return error_of(6, @"Program load failure");
  }
  return nil;
}

}  // namespace

@implementation _ANEClient
+ (BOOL)instancesRespondToSelector:(SEL)selector {
  if (fault("no_evaluate") &&
      sel_isEqual(selector, @selector(evaluateWithModel:options:request:qos:error:))) {
    return NO;
  }
  return [super instancesRespondToSelector:selector];
}
+ (id)sharedConnection {
  static _ANEClient* client = [self new];  // one per process, never released
  return fault("no_connection") ? nil : client;
}
- (BOOL)loadModel:(_ANEModel*)model
          options:(NSDictionary*)options
              qos:(unsigned int)qos
            error:(NSError**)error {
  if (fault("load_exception")) raise("told to raise");
  NSString* network = [options objectForKey:@"kANEFNetPlistFilenameKey"];
  NSString* compiler = [options objectForKey:@"kANEFCompilerOptionsFilenameKey"];
  NSString* target = [options objectForKey:@"kANEFTargetArchitectureKey"];
  const std::string expected = *model->key + ".bc.mlir";
  if (qos != 25 || ![[options objectForKey:@"kANEFModelType"] isEqual:@"kANEFModelANECIR"] ||
      network == nil || expected != [network UTF8String]) {
    raise("options that the daemon doesn't know");
  }
  const bool has_options = !fault("no_options");
  if ((compiler != nil) != has_options || (has_options && ![target isEqual:@"h16c"])) {
    raise("the compiler's options or target are wrong");
  }
  if ((*error = load_error(options)) != nil) return NO;
  Graph graph = read_region(*model->directory + "/" + expected);
  if (graph.output == nullptr) {
    *error = error_of(16, @"file not found");
    return NO;
  }
  model->graph = new Graph(std::move(graph));
  model->mask = fault("mask_zeroed") ? 0 : mask_in(options);
  count_object(1);  // until it's unloaded
  return YES;
}
- (BOOL)evaluateWithModel:(_ANEModel*)model
                  options:(NSDictionary*)options
                  request:(_ANERequest*)request
                      qos:(unsigned int)qos
                    error:(NSError**)error {
  if (model->graph == nullptr || qos != 25) raise("the model isn't loaded");
  if (only_request == nil) only_request = request;
  if (request != only_request) raise("a request is made for each evaluation");
  if (request->index != (fault("sparse_list") ? 0 : 32)) raise("indices of another procedure");
  ++evaluations;
  if (fault("hang")) pause();
  if (fault("ane_abort")) std::abort();
  if (fault("ane_kill")) kill(getpid(), SIGKILL);
  if (fault("evaluation_exception")) raise("told to raise");
  if (fault("evaluation_fails") || (fault("evaluation_fails_later") && evaluations > 5)) {
    *error = error_of(8, @"inference error");
    return NO;
  }
  if (fault("evaluation_error_only")) *error = error_of(3, @"timeout");
  compute(*model->graph, request);
  attach_statistics(model, request, options);
  return YES;
}
- (BOOL)unloadModel:(_ANEModel*)model
            options:(NSDictionary*)options
                qos:(unsigned int)qos
              error:(NSError**)error {
  (void)options, (void)qos, (void)error;
  if (model->graph == nullptr) raise("the model isn't loaded");
  delete model->graph;
  model->graph = nullptr;
  only_request = nil;
  count_object(-1);
  if (fault("unload_exception")) raise("told to raise");
  return YES;
}
@end
