// The iOS app: one screen of text around the same runner, which is also printed to the console.
// Phones do not run standalone executables, and one window needs no scene manifest.
#import <UIKit/UIKit.h>

#include <cstdio>
#include <string>
#include <thread>

#include "rows.h"
#import "support.h"

NS_ASSUME_NONNULL_BEGIN

@interface NNBTAppDelegate : UIResponder <UIApplicationDelegate>
@property(nullable, nonatomic, strong) UIWindow* window;
@property(nullable, nonatomic, strong) UITextView* text;
@end

NS_ASSUME_NONNULL_END

@implementation NNBTAppDelegate

- (BOOL)application:(UIApplication*)application
    didFinishLaunchingWithOptions:(NSDictionary<NSString*, id>*)options {
  (void)application;
  (void)options;
  UIWindow* window = [[UIWindow alloc] initWithFrame:UIScreen.mainScreen.bounds];
  UIViewController* controller = [UIViewController new];
  UITextView* text = [[UITextView alloc] initWithFrame:window.bounds];
  text.editable = NO;
  text.font = [UIFont monospacedSystemFontOfSize:11 weight:0];
  controller.view = text;
  window.rootViewController = controller;
  [window makeKeyAndVisible];
  self.window = window;
  self.text = text;
  // Otherwise the phone locks its screen during a measurement and stops the app.
  application.idleTimerDisabled = YES;
  std::thread([self] {
    nnbt::measure_rows(nnbt::ConvSpec{}, nnbt::MeasureOptions{}, [self](const std::string& line) {
      std::puts(line.c_str());
      @autoreleasepool {
        [self performSelectorOnMainThread:@selector(show:)
                               withObject:nnbt::to_ns(line + "\n")
                            waitUntilDone:YES];
      }
    });
  }).detach();
  return YES;
}

- (void)show:(NSString*)line {
  NSString* shown = self.text.text;
  self.text.text = shown != nil ? [shown stringByAppendingString:line] : line;
}

@end

int main(int argc, char* argv[]) {
  @autoreleasepool {
    return UIApplicationMain(argc, argv, nil, @"NNBTAppDelegate");
  }
}
