"""Making instances: an exact change of coordinates, decoys, six families of defects, and the calibration of each."""
