// The double of a surface, for the client's doubles.
#pragma once

#import <Foundation/Foundation.h>
#import <IOSurface/IOSurfaceRef.h>

#include <vector>

#include "graph_state.h"

@interface DoubleSurface : NSObject {
 @public
  std::vector<unsigned char>* memory;
  int locks;
}
@end
