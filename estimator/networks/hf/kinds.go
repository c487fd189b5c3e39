package hf

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// builder makes the network of a configuration of one kind.
type builder func(f *fields, name string, o models.Overrides) (*models.Config, error)

// kinds are the known values of model_type. The structures follow their modelling files
// in transformers.
var kinds = map[string]builder{
	"llama":       decoder(llama),
	"mistral":     decoder(llama),
	"smollm3":     decoder(llama),
	"granite":     decoder(llama),
	"ministral":   decoder(llama),
	"qwen2":       decoder(qwen2),
	"qwen3":       decoder(qwen3),
	"qwen2_moe":   decoder(qwen2MoE),
	"qwen3_moe":   decoder(qwen3MoE),
	"mixtral":     decoder(mixtral),
	"gemma":       decoder(gemma),
	"gemma2":      decoder(gemma2),
	"gemma3_text": decoder(gemma3),
	"phi":         decoder(phi),
	"phi3":        decoder(phi3),
	"deepseek_v2": decoder(deepseek),
	"deepseek_v3": decoder(deepseek),
	"olmo2":       decoder(olmo2),
	"starcoder2":  decoder(starcoder2),
	"stablelm":    decoder(stableLM),
	"gpt_neox":    decoder(neoX),
	"gpt_neo":     decoder(neo),
	"opt":         decoder(opt),
	"gpt2":        decoder(gpt2),
	"glm":         decoder(glm),
	"glm4":        decoder(glm4),
	"olmo3":       decoder(olmo2),
	"ministral3":  decoder(ministral3),
	"seed_oss":    decoder(seedOSS),
	"ernie4_5":    decoder(ernie),
	"gpt_oss":     decoder(gptOSS),

	"qwen2_vl_text":     decoder(qwen2),
	"qwen2_5_vl_text":   decoder(qwen2),
	"qwen3_vl_text":     decoder(qwen3),
	"qwen3_vl_moe_text": decoder(qwen3MoE),

	"bert":        encoder(bert),
	"roberta":     encoder(roberta),
	"xlm-roberta": encoder(roberta),
	"camembert":   encoder(roberta),
	"distilbert":  encoder(distilBERT),
	"deberta-v2":  encoder(debertaV2),
	"electra":     encoder(electra, graph.PreTraining),
	"modernbert":  encoder(modernBERT),

	"vit":                   imageEncoder(vit, imageHeads...),
	"deit":                  imageEncoder(deit, imageHeads...),
	"beit":                  imageEncoder(beit, imageHeads...),
	"dinov2":                imageEncoder(dinov2, imageHeads...),
	"dinov2_with_registers": imageEncoder(dinov2, imageHeads...),
	"dinov3_vit":            imageEncoder(dinov3, graph.BaseModel),
	"swin":                  swin,
	"convnext":              convNeXt,
	"convnextv2":            convNeXt,
	"resnet":                resNet,
	"sam":                   sam,
	"sam2":                  sam2,
	"sam2_video":            sam2, // without its memory, as AutoModelForMaskGeneration makes it
	"detr":                  detr,
	"mask2former":           mask2Former,
	"maskformer":            maskFormer,
	"clip":                  towers(clip),
	"siglip":                towers(siglip),

	"t5":      seq2seq(t5),
	"mt5":     seq2seq(t5),
	"bart":    seq2seq(bart),
	"mbart":   seq2seq(mbart),
	"marian":  seq2seq(marian),
	"pegasus": seq2seq(pegasus),
	"whisper": seq2seq(whisper),

	"wav2vec2": wav2vec2,
	"hubert":   wav2vec2,
}
