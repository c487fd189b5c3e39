"""Training programs for carma: the published workloads, on synthetic data unless a data set is mounted.

python -m carma_train MODEL trains; python -m carma_train.measure measures memory and time of a list of
trainings. See docs/containers.md. Python 3.8 and PyTorch 1.13 are enough.
"""
