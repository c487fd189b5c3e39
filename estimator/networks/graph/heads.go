package graph

import "slices"

// Names of heads: the last layers of a model and its loss. They follow the class names of
// the transformers library: BertForMaskedLM has the head masked-lm.
const (
	MaskedLM               = "masked-lm"
	CausalLM               = "causal-lm"
	SequenceClassification = "sequence-classification"
	TokenClassification    = "token-classification"
	QuestionAnswering      = "question-answering"
	PreTraining            = "pre-training"
	BaseModel              = "model" // no head: a loss of the mean of the tokens
	ImageClassification    = "image-classification"
	Contrastive            = "contrastive"            // of texts and images (CLIP)
	ObjectDetection        = "object-detection"       // by learned queries (DETR)
	Segmentation           = "segmentation"           // the same, with masks
	MaskGeneration         = "mask-generation"        // SAM, whose encoders of the image and of the prompts are trained too
	MaskDecoder            = "mask-decoder"           // SAM, whose encoders are frozen
	Seq2SeqLM              = "conditional-generation" // from text or sound to text: the next token of the target
	CTC                    = "ctc"                    // speech to text, by the connectionist temporal classification
	InstanceSegmentation   = "instance-segmentation"  // MaskFormer
	UniversalSegmentation  = "universal-segmentation" // Mask2Former
)

// HasClasses reports whether a head has a number of classes.
func HasClasses(head string) bool {
	return slices.Contains([]string{SequenceClassification, TokenClassification, ImageClassification, ObjectDetection, Segmentation}, head)
}
