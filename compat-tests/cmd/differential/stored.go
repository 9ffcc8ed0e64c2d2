package main

func (r *run) compareStored() {}
