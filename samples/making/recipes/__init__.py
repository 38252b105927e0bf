"""One module a family of causes, one public function a sample; its docstring becomes the README of the folder."""
