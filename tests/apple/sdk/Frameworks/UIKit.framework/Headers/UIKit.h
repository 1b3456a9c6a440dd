// Declarations of the part of UIKit that objc/ios uses; checked by name against the iOS typings.
#ifndef NNBT_UIKIT_H
#define NNBT_UIKIT_H
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

@interface UIResponder : NSObject
@end
@interface UIColor : NSObject
@property(class, nonatomic, readonly) UIColor *systemBackgroundColor;
@end
@interface UIFont : NSObject
+ (UIFont *)monospacedSystemFontOfSize:(double)fontSize weight:(double)weight;
@end

NS_ASSUME_NONNULL_END
#endif
