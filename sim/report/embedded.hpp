// Files of this folder as text inside the library (cmake/embed.cmake makes the definitions).
#pragma once

#include <string_view>

namespace gccl::embedded {

extern const std::string_view report_html, report_css, report_data_js, report_chart_js, report_export_js,
    report_panels_js, report_timeline_js, report_js;

}  // namespace gccl::embedded
