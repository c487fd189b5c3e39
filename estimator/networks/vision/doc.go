// Package vision has networks of convolutions: classifiers as torchvision and timm have
// them, the ResNet and ConvNeXt of the transformers library, and networks that give each
// pixel a class.
package vision
