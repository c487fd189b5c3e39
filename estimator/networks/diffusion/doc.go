// Package diffusion has networks that make images from noise, as the diffusers library
// trains them: the U-Net, MMDiT and Flux with their autoencoder and encoders of prompts.
package diffusion
