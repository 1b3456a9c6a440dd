// All undocumented methods that objc/ calls, declared as protocols. No private class or symbol is
// linked, and every selector is checked with respondsToSelector: before it is sent. The conformance
// check compares the selectors in the built library with this file, and each selector and class
// here with its source in tests/apple/facts/private_api.json.
#pragma once

#import <Foundation/Foundation.h>
#import <IOSurface/IOSurfaceRef.h>

NS_ASSUME_NONNULL_BEGIN

// MPSGraphCompilationDescriptor. 2 prefers the ANE; 0 is the default. This is only a preference: a
// graph that the ANE's compiler rejects runs on the GPU.
@protocol NNBTCompilationOptions
- (void)setPreferredDevice:(unsigned long long)device;
@end

// MPSGraphExecutableExecutionDescriptor. Turns the silent fallback to the GPU into an error.
@protocol NNBTExecutionOptions
- (void)setDisableANEFallback:(BOOL)disable;
@end

// MPSGraphDevice (class). nil on machines without an ANE.
@protocol NNBTGraphDevices
+ (nullable id)ANEDevice;
@end

// _ANEDeviceInfo (class). Needs no entitlement.
@protocol NNBTAneDevices
+ (BOOL)hasANE;
+ (BOOL)isVirtualMachine;
+ (unsigned int)numANEs;
+ (unsigned int)numANECores;
+ (nullable NSString*)aneArchitectureType;
@end

// _ANEModel (class and instances). The variant with mpsConstants exists from about macOS 26 on.
@protocol NNBTAneModels
+ (nullable id)modelAtURL:(NSURL*)url key:(NSString*)key;
+ (nullable id)modelAtURL:(NSURL*)url key:(NSString*)key mpsConstants:(NSString*)constants;
@end
@protocol NNBTAneModel
- (nullable NSDictionary<NSString*, id>*)modelAttributes;
- (unsigned int)perfStatsMask;
- (void)setPerfStatsMask:(unsigned int)mask;
@end

// _ANEIOSurfaceObject and _ANEPerformanceStatsIOSurface (classes). Type 2 has the counters. The
// argument is 64 bits wide, although a published caller declares an int.
@protocol NNBTAneSurfaces
+ (nullable id)objectWithIOSurface:(IOSurfaceRef)surface;
@end
@protocol NNBTAneStatisticsSurfaces
+ (nullable id)objectWithIOSurface:(id)surface statType:(long long)type;
@end

// _ANEPerformanceStats: of the last evaluation. Times are in nanoseconds.
@protocol NNBTAneStatistics
- (unsigned long long)hwExecutionTime;
- (nullable NSData*)perfCounterData;
- (nullable NSString*)stringForPerfCounter:(int)index;
@end

// _ANERequest (class and instances). The framework sets perfStats in each evaluation.
@protocol NNBTAneRequests
+ (nullable id)requestWithInputs:(NSArray*)inputs
                    inputIndices:(NSArray<NSNumber*>*)inputIndices
                         outputs:(NSArray*)outputs
                   outputIndices:(NSArray<NSNumber*>*)outputIndices
                       perfStats:(NSArray*)statistics
                  procedureIndex:(NSNumber*)procedure;
@end
@protocol NNBTAneRequest
- (BOOL)validate;
- (nullable id)perfStats;
@end

// _ANEClient (class and instances). An evaluation without a completion handler blocks.
@protocol NNBTAneClients
+ (nullable id)sharedConnection;
@end
@protocol NNBTAneClient
- (BOOL)loadModel:(id)model
          options:(NSDictionary<NSString*, id>*)options
              qos:(unsigned int)qos
            error:(NSError* _Nullable* _Nullable)error;
- (BOOL)evaluateWithModel:(id)model
                  options:(NSDictionary<NSString*, id>*)options
                  request:(id)request
                      qos:(unsigned int)qos
                    error:(NSError* _Nullable* _Nullable)error;
- (BOOL)unloadModel:(id)model
            options:(NSDictionary<NSString*, id>*)options
                qos:(unsigned int)qos
              error:(NSError* _Nullable* _Nullable)error;
@end

NS_ASSUME_NONNULL_END
