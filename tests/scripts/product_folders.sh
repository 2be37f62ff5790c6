# The folders of the product at the top of the tree, for the tests that read sources: from the highest layer to the
# lowest. Each may include those that follow it, and itself (layers_test.sh).
product_folders="examples program bench report harness preload mount library explore systems services methods rpc platform"
