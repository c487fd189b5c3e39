package sim

import "pgregory.net/rapid"

// Tasks of the measured pairs, as in package interference.
var (
	vgg128  = Load{SMACT: 0.8263, SMOCC: 0.4212, DRAMA: 0.4108, Step: 0.2666}
	vgg32   = Load{SMACT: 0.8140, SMOCC: 0.4203, DRAMA: 0.4359, Step: 0.0758}
	resnet  = Load{SMACT: 0.6855, SMOCC: 0.3475, DRAMA: 0.4709, Step: 0.0973}
	small   = Load{SMACT: 0.1653, SMOCC: 0.0617, DRAMA: 0.0490, Step: 0.0153} // ResNet-18 on CIFAR-100
	smaller = Load{SMACT: 0.1578, SMOCC: 0.0900, DRAMA: 0.0051, Step: 0.0250} // MobileNet on CIFAR-100
)

func loadGen(t *rapid.T) []Load {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Load {
		share := rapid.Float64Range(0, 1)
		return Load{SMACT: share.Draw(t, "smact"), SMOCC: share.Draw(t, "smocc"), DRAMA: share.Draw(t, "drama"), Step: rapid.Float64Range(0, 2).Draw(t, "step")}
	}), 1, 24).Draw(t, "loads")
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
