package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run() error {
	_, err := fmt.Println(version())
	return err
}

// version is what the linker knows: releases are built from a tag.
func version() string {
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return fmt.Sprintf("foretoken %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
