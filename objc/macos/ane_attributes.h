// What a loaded model says about its tensors and its procedure. Internal to objc/.
#pragma once

#import <Foundation/Foundation.h>

#include "ane/tensor.h"

namespace nnbt::ane {

struct Attributes {
  bool one_input_and_output = false;  // if false, nothing below is set
  Tensor input;                       // as listed; missing keys are 0
  Tensor output;
  NSArray<NSNumber*>* _Nullable input_indices;
  NSArray<NSNumber*>* _Nullable output_indices;
  NSNumber* _Nullable procedure;
};

// Reads the first network and procedure. Indices and procedure are 0 if the model has none.
Attributes read_attributes(NSDictionary<NSString*, id>* _Nullable model_attributes);

}  // namespace nnbt::ane
