// Package vision contains convolutional networks: classifiers of torchvision and timm,
// the ResNet and ConvNeXt of the transformers library, and networks that classify each
// pixel.
package vision
