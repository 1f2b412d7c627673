import base64
import io
from xml.etree import ElementTree

from auditdp.report.html.plots import drawing, finish, new_axes, thin_evenly


def test_a_plot_is_what_matplotlib_writes_and_is_described():
    with drawing():
        figure, axes = new_axes(200, 100)
        axes.plot([0, 1], [0, 1])
        element = finish(figure, 'say "<&>"')
        direct = io.BytesIO()
        figure.savefig(
            direct,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None},
        )
    assert element.startswith(
        '<img class="plot" alt="say &#34;&lt;&amp;&gt;&#34;" src="data:image/svg+xml;base64,'
    )
    written = base64.b64decode(element.partition("base64,")[2].rstrip('">'))
    assert written == direct.getvalue()
    assert ElementTree.fromstring(written).tag == "{http://www.w3.org/2000/svg}svg"


def test_thinning_evenly_keeps_both_ends():
    assert thin_evenly(list(range(1001)), 5) == [0, 250, 500, 750, 1000]
    assert thin_evenly([1, 2, 3], 5) == [1, 2, 3]
