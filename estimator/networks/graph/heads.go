package graph

import "slices"

// Names of heads. A head is the last layers of a model and its loss. The names follow the
// class names of the transformers library: BertForMaskedLM has the head masked-lm.
const (
	MaskedLM               = "masked-lm"
	CausalLM               = "causal-lm"
	SequenceClassification = "sequence-classification"
	TokenClassification    = "token-classification"
	QuestionAnswering      = "question-answering"
	PreTraining            = "pre-training"
	BaseModel              = "model" // no head: a loss of the mean of the tokens
	ImageClassification    = "image-classification"
	Contrastive            = "contrastive"            // contrastive loss of texts and images (CLIP)
	ObjectDetection        = "object-detection"       // detection by learned queries (DETR)
	Segmentation           = "segmentation"           // object detection with masks (DETR)
	MaskGeneration         = "mask-generation"        // SAM with trained image and prompt encoders
	MaskDecoder            = "mask-decoder"           // SAM with frozen encoders
	Seq2SeqLM              = "conditional-generation" // from text or sound to text: the next token of the target
	CTC                    = "ctc"                    // speech to text with connectionist temporal classification
	InstanceSegmentation   = "instance-segmentation"  // MaskFormer
	UniversalSegmentation  = "universal-segmentation" // Mask2Former
)

// HasClasses reports whether a head has a number of classes.
func HasClasses(head string) bool {
	return slices.Contains([]string{SequenceClassification, TokenClassification, ImageClassification, ObjectDetection, Segmentation}, head)
}
