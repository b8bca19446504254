"""The parts of making a case real: models and their copies, inputs, images, generation configs, fingerprints."""
