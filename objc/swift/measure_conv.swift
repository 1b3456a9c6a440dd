// Measures the standard convolution workload on the GPU and the Neural Engine from Swift.
// Build: see docs/ios.md.
import NNBTConv

/// The text in a fixed-size C array, up to its terminating zero.
func text<Array>(_ array: Array) -> String {
  withUnsafeBytes(of: array) { bytes in
    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  }
}

/// Measures one chain and prints one line.
func show(variant: String, device: String) {
  var request = nnbt_conv_standard()
  var result = nnbt_conv_result()
  let done = variant.withCString { variantName in
    device.withCString { deviceName in
      request.variant = variantName
      request.device = deviceName
      return nnbt_conv_measure(&request, &result)
    }
  }
  guard done == 1 else {
    print("\(variant) \(device): \(text(result.sentence))")
    return
  }
  let milliseconds = result.median_ns / 1e6
  let verdict = result.right == 1 ? "right" : "WRONG: \(text(result.sentence))"
  print("\(variant) \(device): \(milliseconds) ms, \(result.tops) TOPS, \(verdict) \(text(result.placement))")
}

for variant in ["fp16", "int8", "qdq", "w8a8"] {
  for device in ["gpu", "ane"] {
    show(variant: variant, device: device)
  }
}
