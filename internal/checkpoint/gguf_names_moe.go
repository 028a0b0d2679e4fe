package checkpoint

// expertTensors are those of mixtures of experts. GGUF has the experts of a layer
// in one tensor for each projection (see Stack); that is what the canonical names
// without an expert's number mean.
var expertTensors = map[string]string{
	"ffn_gate_inp":   "mlp.gate",
	"ffn_gate_exps":  "mlp.experts.gate_proj",
	"ffn_up_exps":    "mlp.experts.up_proj",
	"ffn_down_exps":  "mlp.experts.down_proj",
	"ffn_gate_shexp": "mlp.shared_experts.gate_proj",
	"ffn_up_shexp":   "mlp.shared_experts.up_proj",
	"ffn_down_shexp": "mlp.shared_experts.down_proj",
}

// expertNames: Llama's names and those of experts, in Mixtral and Qwen3-MoE.
var expertNames = ggufNames{model: llamaNames.model, layer: with(llamaNames.layer, expertTensors)}
