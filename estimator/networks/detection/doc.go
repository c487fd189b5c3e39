// Package detection has networks that find objects and their masks: Faster and Mask R-CNN
// and RetinaNet of torchvision, YOLO of ultralytics, DETR, MaskFormer, Mask2Former and SAM
// of the transformers library.
package detection
