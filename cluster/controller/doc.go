// Package controller decides what becomes of the cluster's metadata: pure
// decisions over an image, and the driver that proposes, applies, publishes and
// answers.
package controller
