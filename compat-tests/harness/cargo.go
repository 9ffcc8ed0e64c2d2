package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Cargo builds the program "client" of a package of Rust in the folder name of the cache and returns its path. The
// sources are the package's, by their name in its folder src. What the manifest asks for is fetched and built once, and
// then without the network only what has changed.
func Cargo(name, manifest string, sources map[string][]byte) (program string, err error) {
	if _, err := exec.LookPath("cargo"); err != nil {
		return "", fmt.Errorf("there is no Cargo on this machine (1.85 or newer, by rustup): %w", err)
	}
	if err := Debian("g++", "make"); err != nil { // most clients have parts in C
		return "", err
	}
	dir, err := Install(name, manifest, func(dir string) error {
		empty := map[string][]byte{"../Cargo.toml": []byte(manifest), "main.rs": []byte("fn main() {}\n")}
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "src"), 0o755), update(filepath.Join(dir, "src"), empty)); err != nil {
			return err
		}
		return cargoBuild(dir)
	})
	if err != nil {
		return "", err
	}
	if err := update(filepath.Join(dir, "src"), sources); err != nil {
		return "", err
	}
	return filepath.Join(dir, "target", "debug", "client"), cargoBuild(dir, "--offline")
}

func cargoBuild(dir string, args ...string) error {
	env := []string{"CARGO_TARGET_DIR=" + filepath.Join(dir, "target")}
	return Command(dir, env, "cargo", append([]string{"build", "--quiet"}, args...)...)
}

// update writes the files that are not there as they should be: Cargo builds anew what is newer than what was built.
func update(dir string, files map[string][]byte) error {
	for name, text := range files {
		file := filepath.Join(dir, name)
		if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, text) {
			continue
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
