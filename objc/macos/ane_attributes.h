// What a loaded model says of its tensors and its procedure. Internal to objc/.
#pragma once

#import <Foundation/Foundation.h>

#include "ane/tensor.h"

namespace nnbt::ane {

struct Attributes {
  bool one_input_and_output = false;  // else nothing below is set
  Tensor input;                       // as listed, missing keys zero
  Tensor output;
  NSArray<NSNumber*>* _Nullable input_indices;
  NSArray<NSNumber*>* _Nullable output_indices;
  NSNumber* _Nullable procedure;
};

// Of the first network and procedure; indices and procedure are 0 where the model names none.
Attributes read_attributes(NSDictionary<NSString*, id>* _Nullable model_attributes);

}  // namespace nnbt::ane
