package hf

import (
	"carma/configs/models"
	"carma/estimator/networks/transformer"
)

// glm has one projection for both halves of a gated part.
func glm(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.Key = f.whole("head_dim", 128)
	d.BiasQKV, d.BiasOut, d.JointGate = f.flag("attention_bias", true), false, true
}

func ministral3(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.Key = f.whole("head_dim", 128)
}

// glm4 has norms before and after each part, too.
func glm4(f *fields, d *transformer.Decoder) {
	glm(f, d)
	d.Sandwich = true
}

func seedOSS(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.Key = f.whole("head_dim", 128)
	d.BiasQKV, d.BiasOut = f.flag("attention_bias", true), f.flag("attention_out_bias", false)
}

func ernie(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.Key = f.whole("head_dim", 128)
	bias := f.flag("use_bias", false)
	d.BiasQKV, d.BiasOut, d.BiasInner = bias, bias, bias
	d.Tied = f.flag("tie_word_embeddings", true)
}

// gptOSS has experts with biases, and attention in single operations with a learned score
// for each head.
func gptOSS(f *fields, d *transformer.Decoder) {
	llama(f, d)
	d.Key = f.whole("head_dim", 64)
	bias := f.flag("attention_bias", true)
	d.BiasQKV, d.BiasOut, d.Sinks, d.Unfused = bias, bias, true, true
	d.Activation = models.SiLU
	f.experts(d, &transformer.Experts{
		Number: f.whole("num_local_experts", 128), Active: f.whole("num_experts_per_tok", 4), Inner: d.Inner, Biased: true,
	})
}
