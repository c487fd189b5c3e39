// Package hf reads the config.json of models of the transformers and diffusers libraries,
// and contains some models of the hub by name. It converts them to networks of package
// zoo.
//
// The fields and their defaults come from the libraries' configuration classes
// (transformers 5.23, diffusers 0.42.1). No weights are read, and nothing is fetched.
package hf
