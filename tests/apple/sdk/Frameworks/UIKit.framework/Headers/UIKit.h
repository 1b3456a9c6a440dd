// Declarations of the part of UIKit that objc/ios uses; checked against the iOS typings by name.
#ifndef NNBT_UIKIT_H
#define NNBT_UIKIT_H
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

typedef double CGFloat;
typedef struct CGPoint {
  CGFloat x, y;
} CGPoint;
typedef struct CGSize {
  CGFloat width, height;
} CGSize;
typedef struct CGRect {
  CGPoint origin;
  CGSize size;
} CGRect;

@class UIApplication, UIScreen, UIViewController;

@protocol UIApplicationDelegate <NSObject>
@optional
- (BOOL)application:(UIApplication*)application
    didFinishLaunchingWithOptions:(nullable NSDictionary<NSString*, id>*)launchOptions;
@end

@interface UIResponder : NSObject
@end
@interface UIApplication : UIResponder
@property(nonatomic, getter=isIdleTimerDisabled) BOOL idleTimerDisabled;
@end
@interface UIScreen : NSObject
@property(class, nonatomic, readonly) UIScreen* mainScreen;
@property(nonatomic, readonly) CGRect bounds;
@end
@interface UIFont : NSObject
+ (UIFont*)monospacedSystemFontOfSize:(CGFloat)fontSize weight:(CGFloat)weight;
@end
@interface UIView : UIResponder
@property(nonatomic) CGRect bounds;
- (instancetype)initWithFrame:(CGRect)frame;
@end
@interface UIWindow : UIView
@property(nullable, nonatomic, strong) UIViewController* rootViewController;
- (void)makeKeyAndVisible;
@end
@interface UIScrollView : UIView
@end
@interface UITextView : UIScrollView
@property(null_resettable, nonatomic, copy) NSString* text;
@property(nullable, nonatomic, strong) UIFont* font;
@property(nonatomic, getter=isEditable) BOOL editable;
@end
@interface UIViewController : UIResponder
@property(null_resettable, nonatomic, strong) UIView* view;
@end

FOUNDATION_EXPORT int UIApplicationMain(int argc, char* _Nullable argv[_Nonnull],
                                        NSString* _Nullable principalClassName,
                                        NSString* _Nullable delegateClassName);

NS_ASSUME_NONNULL_END
#endif
