import runpy, sys
def test_q():
    sys.argv=["x","inpytest-tests"]
    runpy.run_path("/tmp/q4.py")
    sys.argv=["x","plain"]
    runpy.run_path("/tmp/q3.py")
