package model

// qwen2 is Qwen2 and Qwen2.5 (Yang et al. 2024): Llama with biases on the
// query, key and value projections. Layers from max_window_layers on may have
// a sliding window; no published model turns it on.
var qwen2 = family{layer: qwen2Layer, adapt: qwenConfig}

func qwen2Layer(b *builder, i int) Layer {
	b.weights.Sub("model.layers.%d.self_attn.", i).Require("q_proj.bias", "k_proj.bias", "v_proj.bias")
	return llamaLayer(b, i)
}

func qwenConfig(c *Config, hf *hfConfig) error {
	if !hf.UseSlidingWindow || hf.SlidingWindow == nil {
		return nil
	}
	from := or(hf.MaxWindowLayers, 28)
	return hf.slide(c, *hf.SlidingWindow, func(i int) bool { return i >= from })
}
