// Double of the private client: computes the real convolution of the loaded region through the
// caller's surfaces, and refuses what the framework would refuse. Without ARC, for GCC's runtime.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "ane_layout.h"
#import "ane_objects.h"
#include "ane_script.h"
#include "package_files.h"

using namespace doubles;

@interface _ANEClient : NSObject
@end

namespace {

constexpr unsigned kCounterBit = 4;

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

_ANERequest* only_request = nil;  // of the loaded model: made once and reused
long evaluations = 0;

void compute(const Graph& graph, _ANERequest* request) {
  const Layout in(*graph.input);
  const Layout out(*graph.output);
  auto& source = *request->input->surface->memory;
  auto& target = *request->output->surface->memory;
  if (request->input->surface->locks != 0 || request->output->surface->locks != 0) {
    ane_raise("a surface is locked while the engine uses it");
  }
  if (source.size() < in.bytes() || target.size() < out.bytes())
    ane_raise("a surface is too small");
  // The same input has the same output, so it is computed once.
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
  if (fault("load_exception")) ane_raise("told to raise");
  NSString* network = [options objectForKey:@"kANEFNetPlistFilenameKey"];
  NSString* compiler = [options objectForKey:@"kANEFCompilerOptionsFilenameKey"];
  NSString* target = [options objectForKey:@"kANEFTargetArchitectureKey"];
  const std::string expected = *model->key + ".bc.mlir";
  if (qos != 25 || ![[options objectForKey:@"kANEFModelType"] isEqual:@"kANEFModelANECIR"] ||
      network == nil || expected != [network UTF8String]) {
    ane_raise("options that the daemon doesn't know");
  }
  const bool has_options = !fault("no_options");
  if ((compiler != nil) != has_options || (has_options && ![target isEqual:@"h16c"])) {
    ane_raise("the compiler's options or target are wrong");
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
  if (model->graph == nullptr || qos != 25) ane_raise("the model isn't loaded");
  if (only_request == nil) only_request = request;
  if (request != only_request) ane_raise("a request is made for each evaluation");
  if (request->index != (fault("sparse_list") ? 0 : 32)) ane_raise("indices of another procedure");
  ++evaluations;
  if (fault("hang")) pause();
  if (fault("ane_abort")) std::abort();
  if (fault("ane_kill")) kill(getpid(), SIGKILL);
  if (fault("evaluation_exception")) ane_raise("told to raise");
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
  if (model->graph == nullptr) ane_raise("the model isn't loaded");
  delete model->graph;
  model->graph = nullptr;
  only_request = nil;
  count_object(-1);
  if (fault("unload_exception")) ane_raise("told to raise");
  return YES;
}
@end
