//! What the protocol asks of a server, answered from the tables of `piton-view`.

use std::path::PathBuf;
use std::sync::Arc;

use piton_protocols::Table;
use piton_view::mcp::resources::{JSON, TEMPLATES};
use piton_view::mcp::{Arguments, INSTRUCTIONS, Reply, Resource, TOOLS, Wrong, schema};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestMetaObject,
    Resource as Listed, ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::call::{self, Caller};
use super::read;
use crate::context::Context;
use crate::environment;
use crate::error::CommandError;
use crate::ui;

/// What Codex says about the call.
const CODEX_META: &str = "x-codex-turn-metadata";

/// The server.
pub struct Server {
    /// The protocols that it knows.
    pub table: &'static Table,
    /// Where it was started.
    pub cwd: PathBuf,
}

impl Server {
    /// The project as it is now: settings may have changed since the last call.
    fn context(&self) -> Result<Context, CommandError> {
        let mut context = Context::new(self.table, &self.cwd, (false, false), true)?;
        context.command = super::COMMAND;
        Ok(context)
    }
}

/// The session that the program itself names: nothing else tells two agents in one project apart.
fn session(meta: &RequestMetaObject) -> Option<String> {
    let codex = meta.get(CODEX_META).and_then(|turn| turn.get("thread_id")?.as_str());
    codex.map(str::to_owned).or_else(environment::agent_session)
}

/// What went wrong, as the agent reads it: with what to do next, and nothing that only a person may do.
fn said(error: &CommandError) -> String {
    let exit_code = error.kind.exit_code();
    let (place, layout) = (ui::place(), piton_view::Layout::plain(usize::MAX));
    let failure = piton_view::answers::Failure::new(
        &error.code,
        &error.message,
        &error.hints,
        exit_code,
        place,
    );
    failure.render(&layout, place).trim_end().to_owned()
}

fn tool(tool: &piton_view::mcp::Tool) -> Tool {
    let hints = ToolAnnotations::with_title(tool.title)
        .read_only(tool.reads_only)
        .destructive(false)
        .idempotent(tool.idempotent)
        .open_world(false);
    Tool::new(tool.name, tool.about, Arc::new(schema::input(tool)))
        .with_title(tool.title)
        .with_raw_output_schema(Arc::new(schema::output(tool)))
        .with_annotations(hints)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let implementation = Implementation::new("piton", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let message = format!("there is no tool `{}`; use {}", request.name, known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let called = || {
            let arguments = Arguments::read(tool, request.arguments.unwrap_or_default()).map_err(
                |Wrong(why)| CommandError::usage("usage", why).hint("correct it and call again"),
            )?;
            let caller = Caller { project: self.context()?, session: session(&context.meta) };
            call::call(&caller, tool.name, &arguments)
        };
        let result = match called() {
            Ok(Reply { data, text }) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(data);
                result
            }
            Err(error) => CallToolResult::error(vec![ContentBlock::text(said(&error))]),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = self.context().and_then(|context| read::list(&context));
        let listed = listed.map_err(|error| ErrorData::internal_error(said(&error), None))?;
        let one = |(resource, title): (Resource, String)| {
            Listed::new(resource.to_string(), title).with_mime_type(resource.mime())
        };
        Ok(ListResourcesResult::with_all_items(listed.into_iter().map(one).collect()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let one = |template: &piton_view::mcp::resources::Template| {
            ResourceTemplate::new(template.uri, template.name)
                .with_description(template.about)
                .with_mime_type(template.mime)
        };
        Ok(ListResourceTemplatesResult::with_all_items(TEMPLATES.iter().map(one).collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let Some(resource) = Resource::parse(&uri) else {
            let message = format!("there is no resource `{uri}`; list the resources and templates");
            return Err(ErrorData::resource_not_found(message, None));
        };
        let read = self.context().and_then(|context| read::read(&context, &resource));
        let text = read.map_err(|error| ErrorData::resource_not_found(said(&error), None))?;
        debug_assert!(resource.mime() != JSON || text.starts_with(['{', '[']), "data is JSON");
        let contents = ResourceContents::text(text, uri).with_mime_type(resource.mime());
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
