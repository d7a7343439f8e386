"""Network pieces shared by backbones, encoders and learners."""
