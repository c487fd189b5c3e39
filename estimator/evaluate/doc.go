// Package evaluate scores estimators on files of measured trainings: real
// models (estimates.csv), generated networks (cnn.csv, mlp.csv) and the timm
// collection with FakeTensor peaks (timm_faketensor.csv). The formats are
// those of the public GPUMemNet data; see docs/estimators.md.
package evaluate
