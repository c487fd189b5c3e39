// Package diffusion contains networks that make images from noise, as trained with the
// diffusers library: the U-Net, MMDiT and Flux with their autoencoder and prompt
// encoders.
package diffusion
