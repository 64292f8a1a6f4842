"""Flows that peclet.flow computes with Kokkos on the device, beside what is known of them."""

import numpy
import peclet.flow as flow
from checking import check, main


def solver(cells, extent, walls=(), viscosity=0.1, step=0.05):
    made = flow.Solver(cells, extent=extent)
    made.set_rho(1.0)
    made.set_mu(viscosity)
    made.set_dt(step)
    for face in walls:
        made.set_domain_bc(face, "wall")
    return made


def open_everywhere(made):
    """No body is in the flow."""
    made.set_pressure_geometry(numpy.full(made.cells, 1e3, order="F"))


def centres(made):
    """Those of the cells, along each axis."""
    return [numpy.asarray(along) for along in made.cell_centers()]


@check
def is_on_the_device():
    assert flow.execution_space == "Cuda", flow.execution_space


@check
def between_two_walls():
    made = solver((8, 16, 8), (0.5, 1.0, 0.5), ("-y", "+y"), step=1.0)
    made.set_advection(False)
    made.set_body_force([1.0, 0.0, 0.0])
    open_everywhere(made)
    for _ in range(40):
        made.step()
    _, y, _ = centres(made)
    wanted = 1.0 / (2 * 0.1) * y * (1 - y)
    found = made.get_u()
    assert numpy.ptp(found, axis=(0, 2)).max() < 1e-6, "it is not the same along the walls"
    numpy.testing.assert_allclose(found[3, :, 3], wanted, rtol=0.02, atol=0.01)


@check
def vortices_that_decay():
    side, viscosity, step, steps = 24, 0.05, 0.02, 25
    made = solver((side, side, 8), (2 * numpy.pi, 2 * numpy.pi, 2 * numpy.pi * 8 / side), viscosity=viscosity, step=step)
    made.set_advection(True)
    open_everywhere(made)
    x, y, _ = centres(made)
    half = x[0]
    # Each component lies on the faces that it goes through.
    u = numpy.cos(x - half)[:, None] * numpy.sin(y)[None, :]
    v = -numpy.sin(x)[:, None] * numpy.cos(y - half)[None, :]
    for component, field in enumerate((u, v)):
        made.set_velocity(component, numpy.asfortranarray(numpy.repeat(field[:, :, None], 8, 2)))
    for _ in range(steps):
        made.step()
    left = numpy.exp(-2 * viscosity * step * steps)
    for found, before in ((made.get_u(), u), (made.get_v(), v)):
        numpy.testing.assert_allclose(found[:, :, 4], left * before, atol=0.03)
    assert made.max_open_divergence() < 1e-5, f"divergence {made.max_open_divergence()}"


@check
def around_a_sphere():
    made = solver((24, 16, 16), (1.5, 1.0, 1.0), step=0.2)
    made.set_advection(False)
    made.set_body_force([1.0, 0.0, 0.0])
    x, y, z = numpy.meshgrid(*centres(made), indexing="ij")
    away = numpy.sqrt((x - 0.75) ** 2 + (y - 0.5) ** 2 + (z - 0.5) ** 2) - 0.3
    made.set_solid(numpy.asfortranarray(away), cutcell_pressure=True)
    for _ in range(30):
        made.step()
    u = made.get_u()
    inside = away < -0.1
    assert numpy.abs(u[inside]).max() < 1e-6, "it flows through the sphere"
    assert u[away > 0.1].mean() > 10 * abs(made.get_v()[away > 0.1].mean()), "it does not flow along"
    numpy.testing.assert_allclose(u, u[:, ::-1, :], atol=1e-4 * u.max())
    flux = (u * made.get_ox()).sum(axis=(1, 2))
    assert numpy.ptp(flux) < 1e-3 * flux.mean(), f"what flows in does not flow out: {flux.min()} to {flux.max()}"
    assert made.max_open_divergence() < 1e-5, f"divergence {made.max_open_divergence()}"


@check
def warmth_that_spreads():
    made = solver((16, 8, 8), (1.0, 0.5, 0.5), step=0.005)
    open_everywhere(made)
    made.add_scalar("warmth", diffusivity=0.2)
    x, _, _ = centres(made)
    wave = numpy.cos(2 * numpy.pi * x)
    made.set_field("warmth", numpy.asfortranarray(numpy.broadcast_to(wave[:, None, None], made.cells)))
    for _ in range(20):
        made.advance_scalars()
    found = made.get_field("warmth")[:, 4, 4]
    left = (found * wave).sum() / (wave * wave).sum()
    assert abs(left - numpy.exp(-4 * numpy.pi**2 * 0.2 * 0.1)) < 0.03, f"{left} is left"


if __name__ == "__main__":
    main()
