// Package transformer contains networks of attention: [Block] is one layer with all
// differences between models. [Decoder], [TextEncoder], [Seq2Seq], [ImageEncoder],
// [SwinEncoder], [WaveEncoder] and [Towers] stack it as in the transformers library. The
// other files contain the catalogue's networks for texts and photos.
package transformer
