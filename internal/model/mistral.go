package model

// mistral is Mistral 7B (Jiang et al. 2023), Nemo and Small: Llama with, in
// the first version, a sliding window on every layer.
var mistral = family{layer: llamaLayer, adapt: mistralConfig}

func mistralConfig(c *Config, hf *hfConfig) error {
	if hf.SlidingWindow == nil {
		return nil
	}
	return hf.slide(c, *hf.SlidingWindow, func(int) bool { return true })
}
