package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Npm installs packages of npm into the folder name of the cache.
func Npm(name string, env []string, packages ...string) (dir string, err error) {
	return Install(name, strings.Join(packages, " "), func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o644); err != nil {
			return err
		}
		args := append([]string{"install", "--no-audit", "--no-fund", "--save-exact"}, packages...)
		return Command(dir, env, "npm", args...)
	})
}

// NodeRdkafka builds node-rdkafka against the machine's own Node, whose headers are there: those of another version
// cannot be downloaded everywhere.
func NodeRdkafka(version string) (dir string, err error) {
	var env []string
	if node, err := exec.LookPath("node"); err == nil {
		prefix := filepath.Dir(filepath.Dir(node))
		if _, err := os.Stat(filepath.Join(prefix, "include", "node", "node.h")); err == nil {
			env = []string{"npm_config_nodedir=" + prefix}
		}
	}
	if err := Debian("g++", "make", "python3", "pkg-config", "libssl-dev", "zlib1g-dev", "libzstd-dev"); err != nil {
		return "", err
	}
	return Npm("node/node-rdkafka-"+version, env, "node-rdkafka@"+version)
}
