// Declarations of the part of CoreFoundation that objc/ uses; checked against the SDK's facts.
#ifndef NNBT_COREFOUNDATION_H
#define NNBT_COREFOUNDATION_H
typedef const void* CFTypeRef;
typedef double CFTimeInterval;
#endif
