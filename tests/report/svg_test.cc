#include "report/svg.h"

#include <gtest/gtest.h>

namespace perdura::report {
namespace {

const char* const drawing =
    "<?xml version=\"1.0\"?>\n<svg width=\"4\" viewBox=\"0 0 4 3\" "
    "xmlns=\"http://www.w3.org/2000/svg\">\n<title>t</title>"
    "<g id=\"a\"><path id='p' stroke='rgb(  0, 114, 178)'/><use xlink:href='#p'/>"
    "<rect fill='url(#a)' style='stroke:rgb(213,94,0)'/></g></svg>";

TEST(InlineSvg, HasNoAddressOfItsOwnAndNoTooltip) {
  const auto svg = inline_svg(drawing, "f1");
  ASSERT_TRUE(svg);
  EXPECT_EQ(svg->view_box, "0 0 4 3");
  EXPECT_EQ(svg->body.find("http"), std::string::npos);
  EXPECT_EQ(svg->body.find("<title>"), std::string::npos);
  EXPECT_TRUE(svg->body.ends_with("</svg>"));
}

TEST(InlineSvg, OfSomethingElseIsNothing) { EXPECT_FALSE(inline_svg("<p>no figure</p>", "f1")); }

TEST(InlineSvg, PrefixesIdsAndWhatRefersToThem) {
  const std::string body = inline_svg(drawing, "f1")->body;
  for (const char* part : {"id=\"f1-a\"", "id='f1-p'", "href='#f1-p'", "url(#f1-a)"}) {
    EXPECT_NE(body.find(part), std::string::npos) << part;
  }
}

TEST(InlineSvg, NamesColorsSoThatDarkModeCanChangeThem) {
  const std::string body = inline_svg(drawing, "f1")->body;
  EXPECT_NE(body.find("stroke='var(--c-0072b2, #0072b2)'"), std::string::npos);
  EXPECT_NE(body.find("stroke:var(--c-d55e00, #d55e00)"), std::string::npos);
}

}  // namespace
}  // namespace perdura::report
