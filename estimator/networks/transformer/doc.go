// Package transformer has networks of attention: [Block] is one layer with all the ways
// in which models differ. [Decoder], [TextEncoder], [Seq2Seq], [ImageEncoder], [SwinEncoder],
// [WaveEncoder] and [Towers] stack it as the transformers library does; the other files
// have the catalogue's networks of texts and photos.
package transformer
