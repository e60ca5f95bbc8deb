"""How hard an object is to see: SeamCam and other scores of one image, and whether people agree with them."""
