// Doubles of IOSurface: memory with a lock count.
#import <Foundation/Foundation.h>

#import "surface.h"

using namespace doubles;

@implementation DoubleSurface
- (void)dealloc {
  delete memory;
  count_object(-1);
  [super dealloc];
}
@end

static NSUInteger number(NSDictionary* properties, CFStringRef key) {
  return [[properties objectForKey:(NSString*)key] unsignedIntegerValue];
}

extern "C" {
const CFStringRef kIOSurfaceWidth = (CFStringRef) @"IOSurfaceWidth";
const CFStringRef kIOSurfaceHeight = (CFStringRef) @"IOSurfaceHeight";
const CFStringRef kIOSurfaceBytesPerElement = (CFStringRef) @"IOSurfaceBytesPerElement";
const CFStringRef kIOSurfaceBytesPerRow = (CFStringRef) @"IOSurfaceBytesPerRow";
const CFStringRef kIOSurfaceAllocSize = (CFStringRef) @"IOSurfaceAllocSize";

IOSurfaceRef IOSurfaceCreate(CFDictionaryRef argument) {
  NSDictionary* properties = (NSDictionary*)argument;
  const NSUInteger bytes = number(properties, kIOSurfaceAllocSize);
  const bool one_row = number(properties, kIOSurfaceWidth) == bytes &&
                       number(properties, kIOSurfaceBytesPerRow) == bytes &&
                       number(properties, kIOSurfaceHeight) == 1 &&
                       number(properties, kIOSurfaceBytesPerElement) == 1;
  if (fault("no_surface") || !one_row || bytes == 0) return nullptr;
  DoubleSurface* surface = [DoubleSurface new];
  count_object(1);
  // Code that relies on fresh memory being zero reads this instead.
  surface->memory = new std::vector<unsigned char>(bytes, 0x5A);
  return (IOSurfaceRef)surface;
}

int IOSurfaceLock(IOSurfaceRef surface, IOSurfaceLockOptions options, uint32_t* seed) {
  (void)options, (void)seed;
  if (fault("no_lock")) return 1;
  ((DoubleSurface*)surface)->locks++;
  return 0;
}

int IOSurfaceUnlock(IOSurfaceRef surface, IOSurfaceLockOptions options, uint32_t* seed) {
  (void)options, (void)seed;
  ((DoubleSurface*)surface)->locks--;
  return 0;
}

// Null unless the surface is locked.
void* IOSurfaceGetBaseAddress(IOSurfaceRef argument) {
  DoubleSurface* surface = (DoubleSurface*)argument;
  return surface->locks > 0 ? surface->memory->data() : nullptr;
}

size_t IOSurfaceGetAllocSize(IOSurfaceRef surface) {
  return ((DoubleSurface*)surface)->memory->size();
}
}
