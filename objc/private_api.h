// Everything undocumented that objc/ calls, declared as protocols: no private class or symbol is
// linked, and every selector is asked for with respondsToSelector: before it's sent. The
// conformance check compares the selectors in the built library with this file.
#pragma once

#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

// MPSGraphCompilationDescriptor. 2 prefers the ANE; 0 is the default. Only a preference: the graph
// runs on the GPU where the ANE's compiler refuses it.
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

NS_ASSUME_NONNULL_END
