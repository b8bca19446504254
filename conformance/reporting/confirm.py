def confirm(folder, processes=2, timeout=120.0): return {}
