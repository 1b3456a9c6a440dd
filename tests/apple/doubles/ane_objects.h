// Interfaces that the doubles of AppleNeuralEngine share.
#pragma once

#import <Foundation/Foundation.h>

#include <string>
#include <vector>

#include "graph_state.h"
#import "surface.h"

namespace doubles {

// Raises NSInvalidArgumentException: the caller violated a rule of the framework.
void ane_raise(const char* what);

}  // namespace doubles

// Counts itself as a live object.
@interface AneDouble : NSObject
@end

@interface _ANEIOSurfaceObject : AneDouble {
 @public
  DoubleSurface* surface;
}
@end

@interface _ANEPerformanceStatsIOSurface : AneDouble {
 @public
  _ANEIOSurfaceObject* object;
}
@end

@interface _ANEPerformanceStats : AneDouble {
 @public
  NSData* data;
  unsigned long long time;
}
@end

@interface _ANEModel : AneDouble {
 @public
  std::string* directory;
  std::string* key;
  doubles::Graph* graph;  // once loaded
  unsigned mask;
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
