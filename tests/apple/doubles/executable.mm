// Doubles of compiling, running and serialising.
#import "mpsgraph.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "package_files.h"

#pragma clang diagnostic ignored "-Wobjc-property-implementation"
#pragma clang diagnostic ignored "-Wincomplete-implementation"

using namespace doubles;

namespace {

struct Options {
  NSUInteger level = 1;  // MPSGraph's default lets it place the graph
  bool prefers_ane = false;
};

struct Execution {
  BOOL wait = NO;
  bool fallback_disabled = false;
  void* handler = nullptr;
};

bool placed_on_ane(MPSGraphCompilationDescriptor* descriptor) {
  const auto* options = static_cast<const Options*>(descriptor->sim);
  return options->level > 0 && options->prefers_ane && !fault("gpu_fallback");
}

// MPSGraph's reaction to an int8 convolution on the GPU: an assertion that cannot be caught.
void abort_like_mpsgraph(const Compiled& compiled) {
  if (!compiled.on_ane && has_int8_convolution(compiled.graph)) std::abort();
}

MPSGraphExecutable* executable_of(Compiled compiled) {
  compiled.archive = make_archive(compiled);
  MPSGraphExecutable* executable = [[MPSGraphExecutable alloc] init];
  executable->sim = new Compiled(std::move(compiled));
  count_executables(1);
  return executable;
}

NSError* run_error(const Compiled& compiled, const Execution& execution) {
  NSString* text = nil;
  if (fault("run_error")) text = @"the device was lost";
  if (execution.fallback_disabled && !compiled.on_ane && fault("fallback_is_error")) {
    text = @"ANE fallback is disabled";
  }
  if (text == nil) return nil;
  return [NSError errorWithDomain:@"MPSGraphDouble"
                             code:1
                         userInfo:[NSDictionary dictionaryWithObject:text
                                                              forKey:NSLocalizedDescriptionKey]];
}

void compute(const Compiled& compiled, MPSGraphTensorData* in, MPSGraphTensorData* out) {
  const auto* source = static_cast<TensorData*>(in->sim);
  const auto* target = static_cast<TensorData*>(out->sim);
  const Graph& graph = compiled.graph;
  if (!(source->shaped == ShapedType{graph.input->shape, graph.input->type}) ||
      !(target->shaped == ShapedType{graph.output->shape, graph.output->type})) {
    refuse("an input or result has another shape or type than its tensor");
  }
  Values values = evaluate(
      graph, decode([source->buffer contents], count(source->shaped.shape), source->shaped.type));
  if (fault("zero_output")) values.assign(values.size(), 0);
  if (fault("nan_output")) values[0] = __builtin_nanf("");
  encode(values, target->shaped.type, [target->buffer contents]);
}

void finish(const Compiled& compiled, MPSGraphExecutableExecutionDescriptor* descriptor,
            NSArray* results) {
  const auto* execution = static_cast<Execution*>(descriptor->sim);
  if (execution->handler == nullptr || fault("no_completion")) return;
  // On another thread, like in the framework.
  auto handler = (MPSGraphExecutableCompletionHandler)execution->handler;
  NSError* error = run_error(compiled, *execution);
  std::thread([&] {
    NSAutoreleasePool* pool = [NSAutoreleasePool new];
    handler(results, error);
    [pool drain];
  }).join();
}

}  // namespace

@implementation MPSGraphCompilationDescriptor
- (id)init {
  if ((self = [super init])) sim = new Options;
  return self;
}
- (void)dealloc {
  delete static_cast<Options*>(sim);
  [super dealloc];
}
- (BOOL)respondsToSelector:(SEL)selector {
  if (fault("no_private") && sel_isEqual(selector, @selector(setPreferredDevice:))) return NO;
  return [super respondsToSelector:selector];
}
- (void)setOptimizationLevel:(MPSGraphOptimization)level {
  static_cast<Options*>(sim)->level = level;
}
- (void)setOptimizationProfile:(MPSGraphOptimizationProfile)profile {
  static_cast<Options*>(sim)->prefers_ane = profile == MPSGraphOptimizationProfilePowerEfficiency;
}
- (void)setWaitForCompilationCompletion:(BOOL)wait {
  (void)wait;
}
- (void)setPreferredDevice:(unsigned long long)device {
  static_cast<Options*>(sim)->prefers_ane = device == 2;
}
@end

@implementation MPSGraphExecutableExecutionDescriptor
- (id)init {
  if ((self = [super init])) sim = new Execution;
  return self;
}
- (void)dealloc {
  auto* execution = static_cast<Execution*>(sim);
  if (execution->handler != nullptr) Block_release(execution->handler);
  delete execution;
  [super dealloc];
}
- (BOOL)respondsToSelector:(SEL)selector {
  if (fault("no_private") && sel_isEqual(selector, @selector(setDisableANEFallback:))) return NO;
  return [super respondsToSelector:selector];
}
- (void)setWaitUntilCompleted:(BOOL)wait {
  static_cast<Execution*>(sim)->wait = wait;
}
- (void)setCompletionHandler:(MPSGraphExecutableCompletionHandler)handler {
  static_cast<Execution*>(sim)->handler = _Block_copy((const void*)handler);
}
- (void)setDisableANEFallback:(BOOL)disable {
  static_cast<Execution*>(sim)->fallback_disabled = disable;
}
@end

@implementation MPSGraphExecutableSerializationDescriptor
- (void)setAppend:(BOOL)append {
  (void)append;
}
@end

@implementation MPSGraphExecutable
- (instancetype)initWithMPSGraphPackageAtURL:(NSURL*)url
                       compilationDescriptor:(MPSGraphCompilationDescriptor*)descriptor {
  if (!(self = [super init])) return nil;
  Compiled compiled{read_package([[url path] UTF8String]), placed_on_ane(descriptor), {}};
  if (compiled.graph.output == nullptr) {
    [self release];
    return nil;
  }
  sim = new Compiled(std::move(compiled));
  count_executables(1);
  return self;
}
- (void)dealloc {
  auto* compiled = static_cast<Compiled*>(sim);
  if (compiled != nullptr && !compiled->archive.empty()) remove_archive(compiled->archive);
  if (compiled != nullptr) count_executables(-1);
  delete compiled;
  [super dealloc];
}
- (NSString*)modelFileArchivePath {
  if (fault("no_archive_key")) {
    [NSException raise:NSUndefinedKeyException format:@"not key value coding-compliant"];
  }
  return [NSString stringWithUTF8String:static_cast<Compiled*>(sim)->archive.c_str()];
}
- (void)specializeWithDevice:(MPSGraphDevice*)device
                  inputTypes:(NSArray<MPSGraphType*>*)inputTypes
       compilationDescriptor:(MPSGraphCompilationDescriptor*)descriptor {
  (void)device, (void)descriptor;
  const auto* type = static_cast<ShapedType*>([inputTypes objectAtIndex:0]->sim);
  const Node& input = *static_cast<Compiled*>(sim)->graph.input;
  if (!(*type == ShapedType{input.shape, input.type}))
    refuse("the input type of a package differs");
}
- (NSArray<MPSGraphTensorData*>*)runWithMTLCommandQueue:(id<MTLCommandQueue>)queue
                                            inputsArray:(NSArray<MPSGraphTensorData*>*)inputs
                                           resultsArray:(NSArray<MPSGraphTensorData*>*)results
                                    executionDescriptor:
                                        (MPSGraphExecutableExecutionDescriptor*)descriptor {
  if (!static_cast<Execution*>(descriptor->sim)->wait) refuse("a blocking run must wait");
  return [self runAsyncWithMTLCommandQueue:queue
                               inputsArray:inputs
                              resultsArray:results
                       executionDescriptor:descriptor];
}
- (NSArray<MPSGraphTensorData*>*)runAsyncWithMTLCommandQueue:(id<MTLCommandQueue>)queue
                                                 inputsArray:(NSArray<MPSGraphTensorData*>*)inputs
                                                resultsArray:(NSArray<MPSGraphTensorData*>*)results
                                         executionDescriptor:
                                             (MPSGraphExecutableExecutionDescriptor*)descriptor {
  Compiled& compiled = *static_cast<Compiled*>(sim);
  if (queue == nil) refuse("no command queue");
  if ([inputs count] != 1 || [results count] != 1) refuse("wrong number of inputs or results");
  if (fault("run_exception")) refuse("told to raise");
  abort_like_mpsgraph(compiled);
  if (fault("abort")) std::abort();
  if (compiled.archive.empty()) compiled.archive = make_archive(compiled);
  if (fault("kill")) kill(getpid(), SIGKILL);
  if (fault("print")) printf("a framework prints this\n"), fflush(stdout);
  compute(compiled, [inputs objectAtIndex:0], [results objectAtIndex:0]);
  finish(compiled, descriptor, results);
  return fault("no_result") ? [NSArray array] : results;
}
- (void)serializeToMPSGraphPackageAtURL:(NSURL*)url
                             descriptor:(MPSGraphExecutableSerializationDescriptor*)descriptor {
  (void)descriptor;
  if (fault("serialise_exception")) refuse("told to raise");
  write_package(*static_cast<Compiled*>(sim), [[url path] UTF8String]);
}
@end

@implementation MPSGraph
+ (instancetype)new {
  return [[self alloc] init];
}
- (MPSGraphExecutable*)compileWithDevice:(MPSGraphDevice*)device
                                   feeds:(NSDictionary*)feeds
                           targetTensors:(NSArray<MPSGraphTensor*>*)targets
                        targetOperations:(NSArray<MPSGraphOperation*>*)operations
                   compilationDescriptor:(MPSGraphCompilationDescriptor*)descriptor {
  (void)device, (void)operations;
  if (fault("compile_nil")) return nil;
  if (fault("compile_exception")) refuse("told to raise");
  MPSGraphTensor* input = [[feeds allKeys] objectAtIndex:0];
  const auto* type =
      static_cast<ShapedType*>(((MPSGraphShapedType*)[feeds objectForKey:input])->sim);
  if (!(*type == ShapedType{node_of(input)->shape, node_of(input)->type})) {
    refuse("a feed has another type than its placeholder");
  }
  Graph graph{node_of(input), node_of([targets objectAtIndex:0])};
  return [executable_of({std::move(graph), placed_on_ane(descriptor), {}}) autorelease];
}
@end
